"""Builds opt, llc and FileCheck against LLVM's static libraries, as LLVM's own default build links them.

The distribution links its tools with libLLVM.so; whoever builds LLVM without LLVM_LINK_LLVM_DYLIB has tools that contain it.
The libraries are those of llvm-VERSION-dev, the sources of the tools those of the source package. With the targets `X86`,
only that target is linked, as with LLVM_TARGETS_TO_BUILD=X86; with `all`, all that the distribution has built.

    DIR/tool-sources/llvm/{tools,utils}   from the package
    DIR/static-TARGETS/bin                the tools; links to the distribution's for all others
    DIR/static-TARGETS/obj/test           the suite's configuration for them
"""

import glob
import os
import shutil
import subprocess

import llvm_tree
from sidebyside import SetupError

TOOLS = {"opt": "tools/opt", "llc": "tools/llc", "FileCheck": "utils/FileCheck"}
# The files that list what there is for each target, and the macro that they use.
KINDS = {"Targets": "TARGET", "AsmPrinters": "ASM_PRINTER", "AsmParsers": "ASM_PARSER", "Disassemblers": "DISASSEMBLER",
         "TargetExegesis": "EXEGESIS", "TargetMCAs": "TARGETMCA"}  # fmt: skip
FOLDERS = ["*/llvm/" + folder for folder in TOOLS.values()]


def prepare(directory, tools, targets):
    """Makes DIR/static-TARGETS complete; returns its obj/test. The suite itself is in DIR already (llvm_tree.prepare)."""
    sources = os.path.join(directory, "tool-sources")
    if not os.path.isdir(sources):
        llvm_tree.fetch(directory, sources, llvm_tree.llvm_version(tools), FOLDERS)
    place = os.path.join(directory, "static-" + targets)
    binaries = os.path.join(place, "bin")
    os.makedirs(binaries, exist_ok=True)
    for installed in glob.glob(os.path.join(tools, "*")):
        name = os.path.basename(installed)
        if name not in TOOLS and not os.path.lexists(os.path.join(binaries, name)):
            os.symlink(os.path.realpath(installed), os.path.join(binaries, name))
    for name, folder in TOOLS.items():
        if not os.path.exists(os.path.join(binaries, name)):
            build(os.path.join(sources, "llvm", folder), os.path.join(binaries, name), tools, targets, place)
    llvm_tree.write_site_config(os.path.join(directory, "src"), os.path.join(place, "obj"), binaries, tools, targets)
    return os.path.join(place, "obj", "test")


def build(sources, program, tools, targets, place):
    compiler = next(filter(None, map(shutil.which, (os.path.join(tools, "clang++"), "clang++", "g++"))), None)
    if not compiler:
        raise SetupError("no C++ compiler; install clang or g++")
    print(f"llvm-suite: building {os.path.basename(program)} with static libraries ({targets})", flush=True)
    flags = llvm_tree.llvm_config(tools, "--cxxflags").split()
    includes = os.path.join(place, "include")
    if targets != "all":
        # The lists of targets that LLVM's headers include; these come first on the search path.
        for kind, macro in KINDS.items():
            path = os.path.join(includes, "llvm/Config", kind + ".def")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            text = "".join(f"LLVM_{macro}({target})\n" for target in targets.split(","))
            with open(path, "w") as out:
                out.write(text + f"#undef LLVM_{macro}\n")
    components = "all" if targets == "all" else " ".join(
        ["analysis", "asmparser", "asmprinter", "bitreader", "bitwriter", "cfguard", "codegen", "core", "coroutines", "extensions",
         "filecheck", "instrumentation", "ipo", "irreader", "lto", "mc", "mirparser", "passes", "remarks", "scalaropts", "support",
         "target", "transformutils", "vectorize", *(target.lower() for target in targets.split(","))])
    config = [os.path.join(tools, "llvm-config"), "--link-static", "--ldflags", "--libs", *components.split(), "--system-libs"]
    libraries = subprocess.run(config, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    command = [compiler, "-O2", "-DNDEBUG", "-fno-rtti", f"-I{includes}", *flags, "-w",
               *sorted(glob.glob(os.path.join(sources, "*.cpp"))), "-fuse-ld=lld", "-Wl,--gc-sections", "-Wl,--export-dynamic",
               "-o", program + ".new", *libraries]  # fmt: skip
    try:
        llvm_tree.run(command, place)
    except SetupError as error:
        raise SetupError(f"{error}\nif a library was not found, install what `llvm-config --system-libs` names: on Debian "
                         "libzstd-dev, zlib1g-dev, libxml2-dev and libtinfo-dev") from error  # fmt: skip
    os.rename(program + ".new", program)
