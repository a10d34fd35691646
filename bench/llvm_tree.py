"""Gets LLVM's own tests from the distribution's source package and makes them runnable against its tools.

apt works with a private configuration below the given directory: the distribution's own sources with `deb`
turned into `deb-src`. So nothing of the system changes and no root is needed. tools/llvm-exegesis is left
out: its configuration runs the tool, which hangs on virtual machines.

    DIR/src/llvm/{test,utils}     from the package; an existing tree is used as it is
    DIR/obj/test/lit.site.cfg.py  what LLVM's CMake would have written
"""

import glob
import os
import re
import shutil
import subprocess

from sidebyside import SetupError

LEFT_OUT = "tools/llvm-exegesis"


def prepare(directory, tools):
    """Makes DIR complete for the LLVM whose tools are in the directory `tools`; returns DIR/obj/test."""
    source, build = os.path.join(directory, "src"), os.path.join(directory, "obj")
    if not os.path.isdir(os.path.join(source, "llvm", "test")):
        fetch(directory, source, llvm_version(tools))
    write_site_config(source, build, tools)
    return os.path.join(build, "test")


def llvm_version(tools):
    """Major version of the tools, as text."""
    return llvm_config(tools, "--version").split(".")[0]


def llvm_config(tools, option):
    """What llvm-config of the tools answers."""
    command = [os.path.join(tools, "llvm-config"), option]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


SUITE = [f"--exclude=*/llvm/test/{LEFT_OUT}", "*/llvm/test", "*/llvm/utils"]


def fetch(directory, source, version, folders=SUITE):
    """Downloads the source package of LLVM `version` and unpacks these folders of it into `source`."""
    for program, package in (("xz", "xz-utils"), ("tar", "tar"), ("apt-get", "apt")):
        if not shutil.which(program):
            raise SetupError(f"no {program}; install {package}")
    download = os.path.join(directory, "download")
    os.makedirs(download, exist_ok=True)
    apt = private_apt(os.path.join(directory, "apt"))
    package = f"llvm-toolchain-{version}"
    print(f"llvm-suite: downloading {package} (about 170 MB) with a private apt in {directory}/apt", flush=True)
    # Not checked: hooks that clean the system's cache after an update fail for an ordinary user.
    run(["apt-get", *apt, "-q", "update"], directory, check=False)
    exact = installed_source_version(version)
    wanted = [f"{package}={exact}", package] if exact else [package]
    for name in wanted:
        if run(["apt-get", *apt, "-q", "--download-only", "--tar-only", "source", name], download, check=name == package):
            break
    archives = [path for path in glob.glob(f"{download}/*.orig.tar.*") if not path.endswith(".asc")]
    if len(archives) != 1:
        raise SetupError(f"{len(archives)} .orig.tar files in {download} instead of one; remove it and try again")
    unpack(archives[0], source, folders)
    shutil.rmtree(download)


def unpack(archive, source, folders):
    """Takes these folders out of the archive; an interrupted try leaves no half of a tree."""
    partial = source + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    print(f"llvm-suite: unpacking {os.path.basename(archive)}", flush=True)
    options = [word for word in folders if word.startswith("-")]
    wanted = [word for word in folders if not word.startswith("-")]
    run(["tar", "-C", partial, "--strip-components=1", "--wildcards", *options, "-xf", archive, *wanted], partial)
    os.rename(partial, source)


def run(command, directory, check=True):
    """Runs a command of the set-up; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode and check:
        raise SetupError(f"`{' '.join(command)}` failed with status {done.returncode}:\n{done.stdout[-2000:]}")
    return done.returncode == 0


def installed_source_version(version):
    """Version of the source package the installed tools were built from, so that tests and tools agree."""
    query = ["dpkg-query", "-W", "-f", "${source:Version}", f"llvm-{version}"]
    found = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return found.stdout.strip() if found.returncode == 0 else ""


def private_apt(directory):
    """Options for apt-get to work below `directory`, with the source packages of the system's own sources."""
    for name in ("sources", "lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(directory, name), exist_ok=True)
    found = 0
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]:
        distribution = os.path.basename(path) in ("sources.list", "debian.sources", "ubuntu.sources")
        if distribution and os.path.exists(path):
            with open(path) as text, open(os.path.join(directory, "sources", local_name(path)), "w") as copy:
                found += 1
                copy.write(with_sources(text.read()))
    if not found:
        raise SetupError("no sources of the distribution in /etc/apt; put an unpacked tree at DIR/src/llvm")
    return [
        "-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={directory}/sources",
        "-o", f"Dir::State::Lists={directory}/lists", "-o", f"Dir::Cache={directory}/cache",
        "-o", "APT::Sandbox::User=" + ("root" if os.geteuid() == 0 else ""),
    ]  # fmt: skip


def local_name(path):
    """apt reads only names with one of its two endings from a sources directory."""
    return "system.list" if path.endswith("sources.list") else os.path.basename(path)


def with_sources(text):
    """A sources file of either format with binary packages replaced by source packages, each only once."""
    if re.search(r"^Types:", text, re.MULTILINE):
        return re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
    lines = (re.sub(r"^\s*deb(-src)?(?=\s)", "deb-src", line) for line in text.splitlines())
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith("deb-src"))) + "\n"


def write_site_config(source, build, tools, config_tools=None, targets="all"):
    """Fills in LLVM's lit.site.cfg.py.in as its CMake does, for `tools` of the distribution's build, or, if `config_tools` are
    that build's, for static ones with these targets."""
    with open(os.path.join(source, "llvm/test/lit.site.cfg.py.in")) as template:
        text = template.read()
    values = site_values(source, build, config_tools or tools)
    values["LLVM_TOOLS_DIR"] = tools
    if config_tools:
        values["LLVM_LINK_LLVM_DYLIB"] = values["LLVM_ENABLE_PLUGINS"] = "0"
    if targets != "all":
        values["TARGETS_TO_BUILD"] = targets.replace(",", " ")
    filled = re.sub(r"@(\w+)@", lambda match: values.get(match[1], "0"), text)
    os.makedirs(os.path.join(build, "test"), exist_ok=True)
    with open(os.path.join(build, "test", "lit.site.cfg.py"), "w") as out:
        out.write(filled)


def site_values(source, build, tools):
    """CMake's variables. What is not here is off, hence 0."""
    triple, machine = llvm_config(tools, "--host-target"), os.uname().machine
    libraries = llvm_config(tools, "--libdir")
    native = {"x86_64": "X86", "aarch64": "AArch64", "riscv64": "RISCV"}.get(machine, machine)
    version = llvm_config(tools, "--version").split(".")
    values = dict.fromkeys(
        ["LLVM_LIT_TOOLS_DIR", "LLVM_LIT_ERRC_MESSAGES", "CMAKE_OSX_SYSROOT", "OSX_SYSROOT", "OCAMLFLAGS", "EXEEXT",
         "PTXAS_EXECUTABLE", "LLVM_BINDINGS", "HOST_LDFLAGS", "LLVM_USE_SANITIZER", "LLVM_VERSION_SUFFIX",
         "LLVM_FORCE_VC_REVISION", "LIT_SITE_CFG_IN_FOOTER"], "",
    )  # fmt: skip
    on = ["LLVM_ENABLE_ZLIB", "LLVM_ENABLE_ZSTD", "LLVM_ENABLE_LIBXML2", "LLVM_ENABLE_FFI", "LLVM_ENABLE_THREADS"]
    values.update(dict.fromkeys([*on, "LLVM_ENABLE_PLUGINS", "LLVM_LINK_LLVM_DYLIB"], "1"))
    values.update({
        "LIT_SITE_CFG_IN_HEADER": "import os\ndef path(p): return p",
        "LLVM_HOST_TRIPLE": triple, "LLVM_TARGET_TRIPLE": triple,
        "LLVM_SOURCE_DIR": os.path.join(source, "llvm"), "LLVM_BINARY_DIR": build,
        "LLVM_TOOLS_DIR": tools, "LLVM_LIBS_DIR": libraries, "SHLIBDIR": libraries,
        "SHLIBEXT": ".so", "LLVM_PLUGIN_EXT": ".so", "HOST_OS": "Linux", "HOST_CC": "cc", "HOST_CXX": "c++",
        "LLVM_NATIVE_ARCH": native, "HOST_ARCH": machine,
        "Python3_EXECUTABLE": shutil.which("python3"), "GOLD_EXECUTABLE": shutil.which("ld.gold") or "/bin/true",
        "LD64_EXECUTABLE": "/bin/true", "OCAMLFIND": "OCAMLFIND-NOTFOUND",
        "LLVM_VERSION_MAJOR": version[0], "LLVM_VERSION_MINOR": version[1],
        "TARGETS_TO_BUILD": llvm_config(tools, "--targets-built"),
    })  # fmt: skip
    return values


def folders_without_left_out(source, folders):
    """The folders, with each that contains what is left out replaced by what else is in it."""
    result = []
    for folder in folders:
        folder = os.path.normpath(folder)
        path = os.path.join(source, "llvm/test", folder)
        if not os.path.exists(path):
            raise SetupError(f"no {folder} in {source}/llvm/test")
        inside = folder == "." or (LEFT_OUT + "/").startswith(folder + "/")
        if folder == LEFT_OUT or not (inside and os.path.exists(os.path.join(source, "llvm/test", LEFT_OUT))):
            result += [] if folder == LEFT_OUT else [folder]
        else:
            below = sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)))
            result += folders_without_left_out(source, [os.path.normpath(os.path.join(folder, name)) for name in below])
    return result
