"""The command line: a click group that imports a command's module only when the command is used."""
