from weitblick.config.load import load_recipe
from weitblick.config.recipe import Recipe

__all__ = ["Recipe", "load_recipe"]
