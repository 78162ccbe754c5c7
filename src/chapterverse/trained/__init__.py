"""The trained models that ship: a reader of question and passage, a verifier of sentence and evidence.

Owns running them on the CPU. Never decides anything: it gives scores, thresholds are their users'.
"""

from chapterverse.trained.cross_encoder import CrossEncoder, Name, Scored

__all__ = ["CrossEncoder", "Name", "Scored"]
