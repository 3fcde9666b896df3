"""The CrossGuard policy pack: rules as data, for any Pulumi AWS program."""
