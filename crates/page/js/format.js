// Values in the unit in which they are read most easily, worded as the command line words them (crates/bench, render/units).

const digits = (value) => {
  const size = Math.abs(value);
  if (value === 0) return "0";
  return size >= 100 ? value.toFixed(1) : size >= 10 ? value.toFixed(2) : value.toFixed(3);
};

export const seconds = (value) => {
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return `${digits(value)} s`;
  if (size >= 1e-3) return `${digits(value * 1e3)} ms`;
  return size >= 1e-6 ? `${digits(value * 1e6)} µs` : `${digits(value * 1e9)} ns`;
};

export const nanos = (value) => seconds(value / 1e9);

export const count = (value) => value.toLocaleString("en-US");

export const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(part === whole ? 0 : 1)} %` : "–");

export const change = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${nanos(Math.abs(value))}`;

// What axes write at a tick: as few digits as tell the ticks apart.
export const ofUnit = (unit) => (value) => {
  const short = (number) => String(Number(number.toPrecision(6)));
  if (unit === "s") {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1) return `${short(value)} s`;
    if (size >= 1e-3) return `${short(value * 1e3)} ms`;
    return size >= 1e-6 ? `${short(value * 1e6)} µs` : `${short(value * 1e9)} ns`;
  }
  return unit === "%" ? `${short(value)} %` : short(value);
};
