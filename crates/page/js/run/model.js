// A run's data as the page carries it: columns, one value for each test. Times are nanoseconds, all of them integers, so that sums
// are exact. Nothing is computed here but names; every figure is the run's own or a sum of such.

export class Run {
  constructor(data) {
    Object.assign(this, data);
    this.size = data.tests.name.length;
  }

  directory(test) {
    const [suite, path] = this.dirs[this.tests.dir[test]];
    return `${this.suites[suite]} :: ${path}`;
  }

  name(test) {
    const [suite, path] = this.dirs[this.tests.dir[test]];
    const file = this.tests.name[test];
    return `${this.suites[suite]} :: ${path ? `${path}/` : ""}${file}`;
  }

  code(test) {
    return this.codes[this.tests.code[test]];
  }

  // null where the test did not run.
  nanos(test) {
    return this.tests.ns[test];
  }

  // Nanoseconds of the run before, or null.
  before(test) {
    const before = this.tests.before[test];
    return before === null ? null : Math.abs(before);
  }

  failedBefore(test) {
    return (this.tests.before[test] ?? 0) < 0;
  }

  all() {
    return Array.from({ length: this.size }, (_, test) => test);
  }
}

// The colour of a result code.
export const tone = (code) => {
  if (code.fail) return "bad";
  if (["PASS", "FIXED", "XFAIL"].includes(code.name)) return "good";
  return code.name === "FLAKYPASS" ? "odd" : "none";
};
