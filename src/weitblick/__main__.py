from weitblick.cli.main import main

main()
