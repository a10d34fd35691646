# Configuration of the demo suite: LLVM's own kind of tests, against the tools of one directory.
#
# The tools are those of `-D llvm_bin=DIR`, else of LLVM_BIN in the environment. Results go below
# `-D exec_root=DIR`, so that two runners can work on the suite without seeing each other's files.
# `-D show_failure=1` adds three tests that fail on purpose.

import os
import re
import subprocess

import lit.formats
import lit.llvm
from lit.llvm.subst import FindTool, ToolSubst

config.name = "demo"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = {".ll", ".s", ".test", ".txt"}
config.excludes = {"Inputs", "lit.cfg.py"}
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = lit_config.params.get("exec_root", os.path.join(config.test_source_root, "..", "out", "tests"))

config.llvm_tools_dir = lit_config.params.get("llvm_bin") or os.environ.get("LLVM_BIN", "")
if not os.path.exists(os.path.join(config.llvm_tools_dir, "FileCheck")):
    lit_config.fatal("no FileCheck in '%s': set LLVM_BIN, or -D llvm_bin=, to LLVM's bin directory" % config.llvm_tools_dir)


def output_of(tool, *arguments):
    """What a tool of the directory under test prints."""
    path = os.path.join(config.llvm_tools_dir, tool)
    return subprocess.run([path, *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


llc_version = output_of("llc", "--version")
config.host_triple = config.target_triple = re.search(r"Default target: (\S+)", llc_version)[1]
config.llvm_version = int(re.search(r"LLVM version (\d+)", llc_version)[1])
# The names of llc's table and of LLVM's target directories differ; features use the latter, as in LLVM.
registered = set(re.findall(r"^ +(\S+) +- ", llc_version, re.MULTILINE))
directories = {"x86-64": "X86", "aarch64": "AArch64", "riscv64": "RISCV", "arm": "ARM", "wasm32": "WebAssembly"}
config.targets = {directory for name, directory in directories.items() if name in registered}

lit.llvm.initialize(lit_config, config)
llvm_config = lit.llvm.llvm_config
llvm_config.use_default_substitutions()
config.environment["PATH"] = os.pathsep.join([config.llvm_tools_dir, config.environment["PATH"]])

tools = ["opt", "llc", "llvm-as", "llvm-dis", "llvm-link", "llvm-mc", "llvm-nm", "llvm-objcopy", "llvm-objdump"]
tools += ["llvm-readobj", "llvm-readelf", "llvm-strings", "split-file", "yaml2obj"]
tools += [
    ToolSubst("%clang_cc1", FindTool("clang"), extra_args=["-cc1", "-internal-isystem", "%resource_dir/include"]),
    ToolSubst("%clang", FindTool("clang"), extra_args=["--no-default-config"] if config.llvm_version >= 16 else []),
    ToolSubst("lld-of-this-llvm", FindTool("ld.lld"), unresolved="ignore"),
]
llvm_config.add_tool_substitutions(tools, [config.llvm_tools_dir])
config.substitutions.append(("%resource_dir", output_of("clang", "-print-resource-dir").strip()))
# A value that uses its match; at the front, so that the tools' names in it are replaced in turn.
config.substitutions.insert(0, (r"%check-as\((\w+)\)", SubstituteCaptures(r"FileCheck %s --check-prefix=\1")))

for target in config.targets:
    config.available_features.add(target.lower() + "-registered-target")
config.available_features.add("llvm-%d" % config.llvm_version)
if os.path.exists(os.path.join(config.llvm_tools_dir, "ld.lld")):
    config.available_features.add("ld.lld")
if lit_config.params.get("show_failure"):
    config.available_features.add("show-failure")
