// Package route decides how a call goes, once, by pure functions: a setting, which is a Comm's, and a question, which
// is a call's, give a route. Package carry, traces, the flight recorder, Explain and its prices follow the route.
//
// Nothing in a setting or a question may look different to two members of a group: they would choose differently.
// testdata/routes.txt has the routes of 17 settings.
package route
