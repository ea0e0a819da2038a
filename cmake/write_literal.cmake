# SPDX-License-Identifier: Apache-2.0
# INPUT: a text file. OUTPUT: the same as a C++ string literal.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "R\"literal(${text})literal\"\n")
