"""Ensembles: classifiers of the same inputs and classes, against attacks that are chosen at random.

members.py   which classifiers make an ensemble; several of them as one classifier; the property that not all are fooled
joint.py     joint radii: the least ε at which one input fools a whole set of members
facts.py     what is known of one point: sets that were fooled, sets that were proven not to be
matrix.py    the game at one ε as a linear program: its value, the attacker's distribution, the defender's mix
attack.py    from the program's solution to at most as many deterministic attacks as there are members
glance.py    a first look at fixed sizes: bounds and a short attack on all points at once
oracle.py    which joint radius to ask for next
game.py      the answer: value, attack, mix and radius, for every ε at once
encoded.py   the game of a fixed number of attacks at one ε, as encodings put it; its answers, replayed
milp.py      that game as one mixed-integer program, smt.py as one formula for Z3
attackers.py attackers that look at one member at a time, for comparison
multiplicative_weights.py  the attacker of Perdomo and Singer: weights over members, gradient attacks as answers
"""
