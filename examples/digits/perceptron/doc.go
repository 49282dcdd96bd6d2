// Package perceptron has the hand-written digits, a net that learns to read them, and the optimiser that teaches it:
// all of the example digits that one replica does alone. It knows of no other replica.
//
// The net's parameters, and its gradient, are each one flat vector, so that one collective serves all layers at once.
package perceptron
