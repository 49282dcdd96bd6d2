package gcl

import (
	"errors"
	"maps"
	"os"

	"gogcl.dev/methods"
)

// environment is the variable that overrides options.
const environment = "GCL_OPTIONS"

// overrides is what the environment says in place of the program.
type overrides struct {
	text   map[string]string
	tuning *methods.Rules // of the text: the file is read once
}

// has reports whether the environment sets the option of a key.
func (v overrides) has(key string) bool {
	_, set := v.text[key]
	return set
}

// on returns options with what the environment says in place of their own.
func (v overrides) on(o Options) (Options, error) {
	if !v.has(tuningKey) {
		return o.override(v.text)
	}
	rest := maps.Clone(v.text)
	delete(rest, tuningKey)
	o, err := o.override(rest)
	if err == nil {
		o.Tuning = v.tuning
	}
	return o, err
}

// environmentOptions returns what the environment overrides.
func environmentOptions() (out overrides, err error) {
	value := os.Getenv(environment)
	if value == "" {
		return out, nil
	}
	text, err := parseObject([]byte(value))
	var o Options
	if err == nil {
		o, err = ParseOptions(text)
	}
	if option := (*OptionError)(nil); errors.As(err, &option) {
		option.environment = true
		return out, option
	}
	if err != nil {
		return out, errorf("environment variable %s: %s", environment, explain(err))
	}
	return overrides{text, o.Tuning}, nil
}

// blame has an error about the value of an option say so if it is the environment that has set the option.
func (l *connection) blame(err error) {
	if option := (*OptionError)(nil); errors.As(err, &option) {
		for _, row := range optionRows {
			if l.override.has(row.key) && row.field == option.Option {
				option.environment = true
			}
		}
	}
}
