"""The record of every run: ``runs/<date-time>-<name>/``, what it holds, how it is read, compared, exported and repeated.

======================  ================================================================================================
``run.json``            what was run, when, by which process; how it ended; in a few numbers
``record.json``         code, seeds, data, settings, checkpoints, torch's switches: what :mod:`traindx.runs.comparing` reads
``config.yaml``         the settings, for people
``environment.json``    the machine and its packages, as ``traindx env --snapshot`` writes them
``code/``               ``diff.patch`` against the commit, ``files/`` imported and not in git
``metrics.jsonl``       one line a step, thinned (:mod:`traindx.probes.recorder`); ``events.jsonl``: what the probes saw
``report.json``         the findings
``ckpt/``               where the best and the last checkpoint lie
``notes.md``            best, failed hypothesis, next
``heartbeat``           touched every few seconds by the process that started the run
======================  ================================================================================================
"""
