"""How fast our training is beside other libraries', and every measurement that was recorded."""
