// Holds what stands on standard input against the schema of SARIF 2.1.0. The schema is in a source file of a package, as a
// text between backquotes; the first argument names that file. Ends with 1 and says what is wrong if it does not fit.
package main

import (
	"errors"
	"io"
	"log"
	"os"
	"strings"

	_ "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif" // brings the schema, at a pinned version
	"github.com/xeipuuv/gojsonschema"
)

// More than any report of a test.
const most = 16 << 20

func main() {
	log.SetFlags(0)
	if err := check(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func check(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	parts := strings.SplitN(string(source), "`", 3)
	if len(parts) != 3 {
		return errors.New("there is no text between backquotes in " + file)
	}
	report, err := io.ReadAll(io.LimitReader(os.Stdin, most))
	if err != nil {
		return err
	}
	result, err := gojsonschema.Validate(gojsonschema.NewStringLoader(parts[1]), gojsonschema.NewBytesLoader(report))
	if err != nil {
		return err
	}
	if result.Valid() {
		return nil
	}
	var wrong []string
	for _, one := range result.Errors() {
		wrong = append(wrong, one.String())
	}
	return errors.New(strings.Join(wrong, "\n"))
}
