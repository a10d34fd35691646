import lit.formats

config.name = "drop-in-unit"
config.test_format = lit.formats.ExecutableTest()
config.suffixes = [".sh"]
config.test_source_root = __file__.rsplit("/", 1)[0]
