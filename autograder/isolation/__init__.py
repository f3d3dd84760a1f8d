"""Shuts in and runs strangers' code: sandbox, fork servers, pool of workers. Knows no notebook.

The words: a *sandbox* is a set of namespaces with limits and a filter of system calls; all of them
share a *jail*, a small root directory (`jail`, `namespaces`, `limits`, `resources`, `seccomp`; what
of it a machine can offer, `machine`). A *fork server* has imported everything once and forks
itself for each request; in messages to people it is the warm process. There are two: one forks
students' processes, each into a sandbox of its own (`fork_server`, and behind it `launch`), one
forks *workers*, which grade (`pool`, `worker_server`, `confine`). Between a worker and a student's
process stand a *supervisor*, one for all, and a *monitor*, one for each sandbox; the worker holds
the other end of the monitor's *leash*, and the sandbox lives as long as that is open (`monitor`).
What runs in a sandbox is the bridge's end for answers, or a function of the course's (`called`).
"""
