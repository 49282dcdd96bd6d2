package gcl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"gogcl.dev/gcl/internal/launch"
)

// maxSecretFile bounds a file with a secret, in bytes.
const maxSecretFile = 64 << 10

// secret is the job's. exposed says why others may know it: off this host that is an error.
func (cfg JoinConfig) secret(set *launch.Settings) (secret []byte, exposed, err error) {
	switch {
	case cfg.Secret != nil:
		return cfg.Secret, nil, nil
	case len(set.Secret) > 0:
		return set.Secret, nil, nil
	case set.SecretFile == "":
		return nil, nil, nil
	}
	secret, exposed, err = readSecret(set.SecretFile)
	if err != nil {
		return nil, nil, fmt.Errorf("GCL_SECRET_FILE: %w", err)
	}
	if exposed != nil {
		exposed = fmt.Errorf("GCL_SECRET_FILE: %w", exposed)
	}
	return secret, exposed, nil
}

// readSecret reads a regular file: what is none, as a pipe or a device, may never end. The file is opened without
// waiting, and looked at when it is open: it may be replaced before.
func readSecret(name string) (secret []byte, exposed, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file (%v): write the secret to one", name, info.Mode())
	}
	secret, err = io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(secret) > maxSecretFile {
		return nil, nil, fmt.Errorf("%s has more than %d bytes: want a file with the secret alone", name, maxSecretFile)
	}
	if secret = bytes.TrimSpace(secret); len(secret) == 0 {
		return nil, nil, errors.New(name + " is empty")
	}
	return secret, exposure(name, info, os.Geteuid()), nil
}
