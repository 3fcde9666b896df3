"""Pulumi ComponentResources; the only place of this program that creates resources."""
