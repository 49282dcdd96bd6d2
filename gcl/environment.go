package gcl

import (
	"errors"
	"os"
)

// environment is the variable that overrides options.
const environment = "GCL_OPTIONS"

// environmentOptions returns what the environment overrides.
func environmentOptions() (map[string]string, error) {
	value := os.Getenv(environment)
	if value == "" {
		return nil, nil
	}
	text, err := parseObject([]byte(value))
	if err == nil {
		_, err = ParseOptions(text)
	}
	if option := (*OptionError)(nil); errors.As(err, &option) {
		option.environment = true
		return nil, option
	}
	if err != nil {
		return nil, errorf("environment variable %s: %s", environment, explain(err))
	}
	return text, nil
}

// blame has an error about the value of an option say so if it is the environment that has set the option.
func (l *connection) blame(err error) {
	if option := (*OptionError)(nil); errors.As(err, &option) {
		for _, row := range optionRows {
			if _, set := l.override[row.key]; set && row.field == option.Option {
				option.environment = true
			}
		}
	}
}
