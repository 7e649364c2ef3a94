"""``python -m verse.cli`` is ``verse``."""

from verse.cli import main

if __name__ == "__main__":
    main(prog_name="verse")
