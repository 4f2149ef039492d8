package main

import "C" // for space.c
