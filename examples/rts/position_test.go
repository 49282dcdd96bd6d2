package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestPosition has positions come back from their text to the bit, and texts that are none refused.
func TestPosition(t *testing.T) {
	at := position{Seed: math.MaxUint64, Batch: 64, Rate: number(math.Nextafter(0.003, 1)), Step: 22,
		Loss: number(math.Nextafter(0.1, 1)), Passes: []pass{
			{Loss: number(math.NaN()), Accuracy: 1. / 3}, {Loss: number(math.Inf(1)), Accuracy: 0},
		}}
	meta, err := at.meta()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseMeta(meta, 1437)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(at) || got.Seed != at.Seed || got.Rate != at.Rate || got.Loss != at.Loss ||
		!math.IsNaN(float64(got.Passes[0].Loss)) ||
		got.Passes[0].Accuracy != 1./3 || !math.IsInf(float64(got.Passes[1].Loss), 1) {
		t.Errorf("%+v, want %+v", got, at)
	}
	for _, tt := range []struct{ position, want string }{
		{``, "unexpected end"},
		{`{`, "unexpected end"},
		{`[]`, "cannot unmarshal array"},
		{`{"batch":64,"step":0} {}`, "after top-level value"},
		{`{"batch":64,"pass":1}`, `want "{\"seed\":0,\"batch\":64,`},
		{strings.Replace(meta[positionKey], "batch", "Batch", 1), `want "{\"seed\":18446744073709551615,\"batch\":64,`},
		{strings.Replace(meta[positionKey], `"step"`, `"step":1,"step"`, 1), `want "{`},
		{strings.Replace(meta[positionKey], `"clip":"0",`, "", 1), `\"clip\":\"0\"`},
		{`{"batch":0}`, "a batch of 0, want 1 to 1437"},
		{`{"batch":1438}`, "a batch of 1438, want 1 to 1437"},
		{`{"batch":64,"step":23}`, "step 23, want 0 to 22"},
		{`{"batch":64,"step":-1}`, "step -1, want 0 to 22"},
		{`{"batch":64,"loss":"much"}`, "invalid syntax"},
		{`{"batch":64,"passes":[{"loss":1}]}`, "cannot unmarshal number"},
	} {
		_, err := parseMeta(map[string]string{programKey: programName, positionKey: tt.position}, 1437)
		if err == nil || !strings.HasPrefix(err.Error(), "its position ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", tt.position, err, tt.want)
		}
	}
}
