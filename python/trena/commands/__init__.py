"""One file per command of `trena`. Each has

add(commands)     its parser, added to argparse's subparsers
main(arguments)   what it does; returns the exit code. `arguments.script` holds the words that are not Trena's
split(words)      optional: (Trena's own words, the rest) of what follows the command's name
"""
