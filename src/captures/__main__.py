from captures.cli import main

main()
