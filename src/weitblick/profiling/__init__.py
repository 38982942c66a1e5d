"""What a model costs: parameters, speed."""
