"""Facts and arithmetic about AWS; nothing here needs an AWS account."""
