"""`python -m radii`: the command line where no script was installed."""

from radii.cli.main import main

if __name__ == "__main__":
    main()
