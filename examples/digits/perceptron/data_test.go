package perceptron

import (
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	train, test, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 1437 || test.Len() != 360 {
		t.Errorf("%d images to train on, %d to test on, want 1437 and 360", train.Len(), test.Len())
	}
	for name, im := range map[string]Images{"train": train, "test": test} {
		var perDigit [Classes]int
		for i := range im.Len() {
			px, label := im.At(i)
			if len(px) != Pixels {
				t.Fatalf("%s: image %d has %d pixels", name, i, len(px))
			}
			perDigit[label]++
		}
		for digit, count := range perDigit {
			if count < im.Len()/Classes/2 {
				t.Errorf("%s: only %d images of %d", name, count, digit)
			}
		}
	}
	// The first lines of the file show 0, 1, 2, 3, 4, 5: the first of them is held out, and so is the sixth.
	if got := string(append(test.labels[:2:2], train.labels[:4]...)); got != "\x00\x05\x01\x02\x03\x04" {
		t.Errorf("test begins with, then train begins with: %v, want [0 5 1 2 3 4]", []byte(got))
	}
	if px, _ := test.At(0); px[2] != 5./16 || px[3] != 13./16 || px[63] != 0 {
		t.Errorf("the first image is %v", px)
	}
}

func TestParseImages(t *testing.T) {
	good := strings.Repeat("16,", Pixels) + "9"
	tests := []struct{ name, text, want string }{
		{"few fields", good + "\n1,2,3\n", "line 2: 3 fields, want 65"},
		{"many fields", good + ",0\n", "line 1: 66 fields, want 65"},
		{"pixel too dark", "17" + good[2:], `line 1: pixel 0 is "17", want 0 to 16`},
		{"pixel below zero", "-1" + good[2:], `line 1: pixel 0 is "-1", want 0 to 16`},
		{"pixel not a number", "x" + good[2:], `line 1: pixel 0 is "x", want 0 to 16`},
		{"no such digit", good[:len(good)-1] + "10", `line 1: digit is "10", want 0 to 9`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseImages(strings.NewReader(tt.text)); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	im, err := parseImages(strings.NewReader(good + "\n" + good + "\n"))
	if err != nil || im.Len() != 2 || im.labels[1] != 9 || im.pixels[64] != 1 {
		t.Errorf("two good lines: %d images, error %v", im.Len(), err)
	}
}
