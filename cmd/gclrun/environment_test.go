//go:build unix

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// environs starts a job within another one, in an environment full of launchers, and returns those of its replicas.
func environs(t *testing.T, flags ...string) []map[string]string {
	t.Helper()
	const n = 3
	s := prepare(t, append([]string{"-n", fmt.Sprint(n)}, flags...)...)
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_SIZE", "SLURM_PROCID",
		"TORCHELASTIC_RUN_ID", "GOGCL_KEPT", "OMPI", "RANKS",
		"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
		"GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME",
		"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "JOB_COMPLETION_INDEX",
		"GCL_JOB", "GCL_RENDEZVOUS", "GCL_SECRET", "GCL_SECRET_FILE", "GCL_TRANSPORT",
		"GCL_NEWCOMER"} {
		s.gclrun.Env = append(s.gclrun.Env, name+"=outer")
	}
	s.raise(n)
	var all []map[string]string
	for _, p := range s.puppets {
		var entries []string
		must(t, json.Unmarshal([]byte(p.ask("environ")), &entries))
		env := map[string]string{}
		for _, entry := range entries {
			name, value, _ := strings.Cut(entry, "=")
			if _, twice := env[name]; twice {
				t.Errorf("%s is there twice", name)
			}
			env[name] = value
		}
		all = append(all, env)
	}
	s.all("exit 0")
	s.ends(0, "", "")
	return all
}

func TestEnvironment(t *testing.T) {
	own := []string{"GCL_JOB", "GCL_RENDEZVOUS", "GCL_SECRET"}
	first := environs(t, "-transport", "unix")
	for rank, env := range first {
		for name, want := range map[string]string{
			"RANK": fmt.Sprint(rank), "LOCAL_RANK": fmt.Sprint(rank), "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3",
			"GCL_TRANSPORT": "unix", "GOGCL_KEPT": "outer", "OMPI": "outer", "RANKS": "outer",
		} {
			if env[name] != want {
				t.Errorf("replica %d: %s=%q, want %q", rank, name, env[name], want)
			}
		}
		for name, value := range env {
			if value == "outer" && name != "GOGCL_KEPT" && name != "OMPI" && name != "RANKS" {
				t.Errorf("replica %d: %s is that of the launcher around", rank, name)
			}
		}
		for _, name := range own {
			if env[name] == "" || env[name] != first[0][name] {
				t.Errorf("replica %d: %s=%q, of replica 0: %q", rank, name, env[name], first[0][name])
			}
		}
	}
	if secret, err := hex.DecodeString(first[0]["GCL_SECRET"]); err != nil || len(secret) != 32 {
		t.Errorf("secret of %d bytes, error %v", len(secret), err)
	}
	second := environs(t)
	for _, name := range own {
		if first[0][name] == second[0][name] {
			t.Errorf("two jobs have the same %s=%s", name, first[0][name])
		}
	}
	if got := second[0]["GCL_TRANSPORT"]; got != "auto" {
		t.Errorf("GCL_TRANSPORT=%q without -transport", got)
	}
}
