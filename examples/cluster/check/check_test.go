package check

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// read is the text of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// release is the release of Go that gogcl.dev wants.
func release(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindStringSubmatch(read(t, root+"/go.mod"))
	if m == nil {
		t.Fatal("go.mod has no line about Go")
	}
	return m[1]
}

// A fault is put into a file: new in place of every old.
type fault struct {
	old, new string
	want     string // in the error
}

// find checks a file, and that each fault is found.
func find(t *testing.T, text string, check func(text string) error, faults []fault) {
	t.Helper()
	if err := check(text); err != nil {
		t.Errorf("the file as it is: %v", err)
	}
	for _, f := range faults {
		if !strings.Contains(text, f.old) {
			t.Errorf("the file has no %q", f.old)
		}
		err := check(strings.ReplaceAll(text, f.old, f.new))
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%q in place of %q: error %v, want one with %q", f.new, f.old, err, f.want)
		}
	}
}

// TestManifest: the manifest is what the API server would take, and its places agree.
func TestManifest(t *testing.T) {
	find(t, read(t, "../kubernetes.yaml"), func(text string) error { return Manifest([]byte(text)) }, []fault{
		{"subdomain:", "subDomainName:", "unknown field"},
		{"    app.kubernetes.io/name: rts\n", "    app: x\n    app: y\n", `key "app" already set`},
		{"kind: Job", "kind: CronJob", "want v1 Service or batch/v1 Job"},
		{"backoffLimit: 0", "backoffLimit: none", "cannot unmarshal"},
		{"\n---\n", "\n", "already set"},
		{"clusterIP: None", "clusterIP: 10.0.0.1", "not headless"},
		{"publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "publishNotReadyAddresses"},
		{"metadata:\n  name: rts\nspec:\n  clusterIP", "metadata:\n  name: other\nspec:\n  clusterIP", "subdomain"},
		{"metadata:\n  name: rts\nspec:\n  completionMode", "metadata:\n  name: other\nspec:\n  completionMode", "host"},
		{"selector:\n    app.kubernetes.io/name: rts", "selector:\n    app.kubernetes.io/name: other", "selects"},
		{"matchLabels:\n              app.kubernetes.io/name: rts", "matchLabels:\n              app: rts", "spread"},
		{"  port: 6000", "  port: 6001", "the Service has ports"},
		{"containerPort: 6000", "containerPort: 6001", "the container has ports"},
		{"value: rts-0.rts:6000", "value: rts-0.rts:6001", "the Service has ports"},
		{"value: rts-0.rts:6000", "value: rts-0.rts", "missing port"},
		{"value: rts-0.rts:6000", "value: rts-1.rts:6000", "host"},
		{"completionMode: Indexed", "completionMode: NonIndexed", "not Indexed"},
		{"completions: 4", "completions: 5", "completions"},
		{"parallelism: 4", "parallelism: 2", "parallelism"},
		{`value: "4"`, `value: "8"`, "completions"},
		{`value: "4"`, `value: 4`, "cannot unmarshal number"},
		{"backoffLimit: 0", "backoffLimit: 6", "backoffLimit"},
		{"restartPolicy: Never", "restartPolicy: OnFailure", "restartPolicy"},
		{"action: FailJob", "action: Ignore", "want FailJob"},
		{"type: DisruptionTarget", "type: Ready", "disruptions"},
		{"containerName: rts", "containerName: other", "every exit code"},
		{"values: [0]", "values: [0, 1]", "every exit code"},
		{"name: GCL_SECRET_FILE", "name: GCL_SECRET", "stands in the manifest"},
		{"value: /run/secrets/gcl/secret", "value: /run/secrets/gcl/other", "no command of the comment"},
		{"mountPath: /run/secrets/gcl", "mountPath: /run/secrets", "nothing is mounted"},
		{"secretName: rts", "secretName: other", "no command of the comment"},
		{"- name: secret\n          secret", "- name: other\n          secret", "is no Secret"},
		{"defaultMode: 0440", "defaultMode: 0444", "others may read"},
		{"fsGroup: 65532", "supplementalGroups: [65532]", "no fsGroup"},
		{"requests:\n              cpu: \"1\"", "requests:\n              cpu: 100m", "want the same"},
		{`cpu: "1"`, "cpu: 1500m", "no whole number"},
	})
}

// TestSurvivingManifest: the manifest by which containers come back is what the API server would take, and its places
// agree.
func TestSurvivingManifest(t *testing.T) {
	find(t, read(t, "../kubernetes-survive.yaml"), func(text string) error { return Manifest([]byte(text)) }, []fault{
		{"restartPolicy: OnFailure", "restartPolicy: Never", "no podFailurePolicy"},
		{"backoffLimit: 10", "backoffLimit: 0", "no container comes back"},
		{"succeededCount: 1", "succeededCount: 4", "no successPolicy"},
		{"  successPolicy:", "  podFailurePolicy:", "unknown field"},
		{"  successPolicy: # Kubernetes 1.31\n    rules:\n      - succeededCount: 1\n",
			"  podFailurePolicy:\n    rules:\n      - action: Ignore\n", "wants restartPolicy Never"},
		{`"/run/gcl/busybox"]`, `"/run/busybox"]`, "the init container copies to"},
		{`command: ["cp", `, `command: ["cp", "-p", `, "want an init container"},
		{"- /run/gcl/busybox", "- /run/other/busybox", "no emptyDir at /run/other"},
		{"emptyDir: {}", "hostPath: {path: /tmp}", "no emptyDir"},
		{"mountPath: /run/gcl\n      containers", "mountPath: /run/x\n      containers", "no emptyDir"},
		{"GCL_RENDEZVOUS=rts:6000", "GCL_RENDEZVOUS=rts-0.rts:6000", "the command has no"},
		{"GCL_RENDEZVOUS=rts:6000", "GCL_RENDEZVOUS=rts:6001", "the command has no"},
		{"GCL_NEWCOMER=1 ", "", "the command has no"},
		{": >/run/gcl/started", ": >/run/gcl/begun", "the command has no"},
		{"[ -e /run/gcl/started ]", "[ -e /run/gcl/begun ]", "the command has no"},
		{"exec /program", "/program", "the command has no"},
		{`"-survive", `, "", "no -survive"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "not read-only"},
		{"completions: 4", "completions: 5", "completions"},
		{"limits:\n              cpu: \"1\"", "limits:\n              cpu: 100m", "want the same"},
	})
}

// TestDockerfile: BuildKit's parser takes the Dockerfile, and what it builds is a program of this module.
func TestDockerfile(t *testing.T) {
	go1 := release(t)
	check := func(text string) error { return Dockerfile([]byte(text), os.DirFS(root), go1) }
	find(t, read(t, "../Dockerfile"), check, []fault{
		{"COPY . .", "COPPY . .", "unknown instruction"},
		{"golang:" + go1, "golang:1.20", "the base is"},
		{"PROGRAM=./examples/rts", "PROGRAM=./examples/none", "is no program"},
		{"PROGRAM=./examples/rts", "PROGRAM=./gcl", "is no program"},
		{"CGO_ENABLED=0", "CGO_ENABLED=1", "CGO_ENABLED=0"},
		{" -trimpath", "", "-trimpath"},
		{"FROM scratch", "FROM debian:bookworm-slim", "not on scratch"},
		{"COPY --from=build /program", "COPY --from=build /src/program", "not copied"},
		{"USER 65532:65532", "USER root", "the user is"},
		{"USER 65532:65532\n", "", "the user is"},
		{`["/program"]`, "/program", "wants a shell"},
	})
}

// TestDockerfileOfComment: the other program that the comment names is one too.
func TestDockerfileOfComment(t *testing.T) {
	text := read(t, "../Dockerfile")
	named := regexp.MustCompile(`--build-arg (PROGRAM=\S+)`).FindAllStringSubmatch(text, -1)
	if len(named) == 0 {
		t.Fatal("the comment names no program")
	}
	for _, m := range named {
		other := strings.Replace(text, "ARG PROGRAM=./examples/rts", "ARG "+m[1], 1)
		if err := Dockerfile([]byte(other), os.DirFS(root), release(t)); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}
