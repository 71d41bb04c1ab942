"""The recipes that come with radii, one YAML file each; `radii train --list` shows them."""
