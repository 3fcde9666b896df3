"""The rules, a module for each family; `policy.catalogue` is the one list of them all."""
