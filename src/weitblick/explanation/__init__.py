"""What context did to a translation: read off the model, kept as data, shown as page, figure, table and plots."""
