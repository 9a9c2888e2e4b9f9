package ablate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/files"
)

// QueriesFile is the name of the file with the rank of every test query in a run's folder.
const QueriesFile = "queries.json"

func writeQueries(dir string, q *eval.Queries) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, QueriesFile), append(text, '\n'))
}

// readQueries returns the ranks of a run, nil where it keeps none.
func readQueries(dir string) (*eval.Queries, error) {
	text, err := files.Read(filepath.Join(dir, QueriesFile), files.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	q := &eval.Queries{}
	if err == nil {
		err = json.Unmarshal(text, q)
	}
	for _, i := range q.TextImage {
		if err == nil && (i < 0 || i >= len(q.I2T)) || len(q.TextImage) != len(q.T2I) {
			err = errors.New("texts and images do not fit each other")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove the folder to make the run anew", filepath.Join(dir, QueriesFile), err)
	}
	return q, nil
}
