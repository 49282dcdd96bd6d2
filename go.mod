module gogcl.dev

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	gonum.org/v1/gonum v0.17.0
)

require golang.org/x/sys v0.49.0

require golang.org/x/sync v0.24.0
