"""Generated from proto/picod/v1 by generate.py; do not edit."""
