package ir

// NotFinite is notFinite.
var NotFinite = notFinite
