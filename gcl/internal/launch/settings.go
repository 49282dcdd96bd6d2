package launch

import (
	"errors"
	"fmt"
	"strings"
)

// Settings are the variables of gcl's own, which are read under every launcher. A variable that is empty counts as not
// set. Fields of variables that are not set are zero.
type Settings struct {
	Job        string     // GCL_JOB: 1 to 64 printable ASCII characters without spaces
	Rendezvous Rendezvous // GCL_RENDEZVOUS
	Transport  string     // GCL_TRANSPORT, as it is: package gcl knows the transports
	Interface  Interface  // GCL_INTERFACE
	Ports      [2]int     // GCL_PORTS: first and last
	Secret     Secret     // GCL_SECRET
	SecretFile string     // GCL_SECRET_FILE: path of a file that has the secret. It is not set beside GCL_SECRET.
	Newcomer   bool       // GCL_NEWCOMER: 1
}

// The variables of gcl's own. GCL_SIZE is only the size of a Kubernetes Job, which tells a pod its index alone.
const (
	varJob        = "GCL_JOB"
	varRendezvous = "GCL_RENDEZVOUS"
	varTransport  = "GCL_TRANSPORT"
	varInterface  = "GCL_INTERFACE"
	varPorts      = "GCL_PORTS"
	varSecret     = "GCL_SECRET"
	varSecretFile = "GCL_SECRET_FILE"
	varNewcomer   = "GCL_NEWCOMER"
	varSize       = "GCL_SIZE"
)

// Secret is a secret that no fmt verb prints.
type Secret []byte

// Format prints "secret" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("secret")) }

// ReadSettings reads the variables of gcl's own and no launcher's. It is for a process whose rank and size the program
// gives.
func ReadSettings(lookup func(string) (string, bool)) (Settings, error) {
	env := environment(lookup)
	out := Settings{
		Job: env.value(varJob), Transport: env.value(varTransport), SecretFile: env.value(varSecretFile),
	}
	if out.Job != "" && (len(out.Job) > maxJob || !isPlain(out.Job)) {
		return Settings{}, fmt.Errorf("%s: want 1 to %d printable ASCII characters without spaces",
			env.show(varJob), maxJob)
	}
	switch text := env.value(varNewcomer); text {
	case "", "0":
	case "1":
		out.Newcomer = true
	default:
		return Settings{}, fmt.Errorf("%s: want 1 for a process that comes to a job that runs, or nothing",
			env.show(varNewcomer))
	}
	var err error
	if text := env.value(varRendezvous); text != "" {
		if out.Rendezvous, err = ParseRendezvous(text); err != nil {
			return Settings{}, fmt.Errorf("%s=%w", varRendezvous, err)
		}
	}
	if text := env.value(varInterface); text != "" {
		if out.Interface, err = ParseInterface(text); err != nil {
			return Settings{}, fmt.Errorf("%s=%w", varInterface, err)
		}
	}
	if text := env.value(varPorts); text != "" {
		if out.Ports, err = ParsePorts(text); err != nil {
			return Settings{}, fmt.Errorf("%s=%w", varPorts, err)
		}
	}
	if text := env.value(varSecret); text != "" {
		if out.SecretFile != "" {
			return Settings{}, errors.New(varSecret + " and " + varSecretFile + " are both set: want one of the two")
		}
		out.Secret = Secret(text)
	}
	return out, nil
}

// environment looks up a variable, as [os.LookupEnv] does.
type environment func(string) (string, bool)

// value is the value of a variable, "" if it is not set.
func (e environment) value(name string) string {
	value, _ := e(name)
	return value
}

// firstSet is the first of the variables that is set, "" if none is.
func (e environment) firstSet(names ...string) string {
	for _, name := range names {
		if name != "" && e.value(name) != "" {
			return name
		}
	}
	return ""
}

// show is a variable and its value, as errors print them.
func (e environment) show(name string) string { return name + "=" + show(e.value(name)) }

// number is the value of a variable that is set, which is at least low and at most high.
func (e environment) number(name string, low, high int) (int, error) {
	n, ok := number(e.value(name), high)
	if !ok || n < low {
		return 0, fmt.Errorf("%s: want a number from %d to %d", e.show(name), low, high)
	}
	return n, nil
}

// missing is an error if some of the variables are not set. It names one that is, by which the source was found.
func (e environment) missing(found string, names ...string) error {
	var absent []string
	for _, name := range names {
		if e.value(name) == "" {
			absent = append(absent, name)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	return fmt.Errorf("%s without %s", e.show(found), strings.Join(absent, " and "))
}
