// Package cheapest finds the method that carries out a collective on a known network in the least time, by price: see
// package gogcl.dev/methods/cost. It sends nothing, and makes no schedule but of swing.
//
// Sizes come in classes, each around a power of two, and a class is priced once, for that power. All members of a group
// that know the same network make the same choice: prices are rounded to nanoseconds, and of methods of one price the
// first one is taken, in the order of methods.All.
package cheapest
