import lit.formats
import lit.util

config.name = "drop-in"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".test"]
config.excludes = ["Inputs"]
config.test_source_root = __file__.rsplit("/", 1)[0]

# Without the site config there is no such attribute.
config.environment["PATH"] = config.tools + ":" + config.llvm_tools + ":" + config.environment["PATH"]
config.substitutions.append(("%who", lit_config.params.get("who", "you")))
config.substitutions.append(("%mode", lit_config.params.get("build_mode", "none")))
if lit_config.params.get("loud") is False:
    config.available_features.add("quiet")
if lit.util.which("FileCheck", config.llvm_tools):
    config.available_features.add("filecheck")
