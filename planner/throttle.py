"""tmp"""
class Throttle:
    def __init__(self, boost=1.2): self.z=1.0; self.beta=1.0; self.boost=boost
    def update(self, consumed, arrived):
        self.beta = consumed/arrived if arrived else 1.0
        self.z = max(1e-4, self.beta*self.z if self.beta<.99 else min(1, self.boost*self.z))
        return self.z
