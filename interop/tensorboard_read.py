"""Reads an event file with the tensorboard package and prints its scalars.

Usage: python interop/tensorboard_read.py FOLDER_OR_FILE
With the golden file of train/runlog copied to a name that holds "tfevents" it
must print loss at steps 1 and 2 and no point at step 300, which was purged.
"""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

acc = EventAccumulator(sys.argv[1])
acc.Reload()
print("file version", acc.file_version)
for tag in acc.Tags()["scalars"]:
    print(tag, [(e.step, round(e.wall_time, 3), e.value) for e in acc.Scalars(tag)])
