"""A library that runs threads as soon as it is loaded: a process that has loaded it must not fork."""
import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
