"""How long tests bear with the fake Hub: a machine that has much else to do answers late, which is no fault; who tests silence is hasty."""

from __future__ import annotations

from dataclasses import replace

from pipeline.hub.transport import Patience

QUICK = Patience(tries=3, first_wait=0.01, longest_wait=0.02, connect=8, read=8, whole=16)
HASTY = replace(QUICK, read=0.8, whole=1.6)
