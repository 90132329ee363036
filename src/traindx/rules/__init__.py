"""The rule catalogue: ``<family>/<slug>/{rule,bad,good}.py``. See CONTRIBUTING.md for how to add one."""
