"""The version of the package, for the command line, the user agent and the build."""

VERSION = "0.1.0"
