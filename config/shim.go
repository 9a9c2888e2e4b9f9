package config

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
)

// Predicates on systems that facts take the place of.

type traits struct{ captions, words, fusion, teacher, tokens, stored, identities, prototypes, sentencePairs bool }

func (m Model) traits() traits {
	return traits{m.is(section.Captions), m.is(section.Words), m.is(section.Fusion), m.is(section.Momentum), m.is(section.Tokens),
		m.is(section.Stored), m.is(section.Identities), m.is(section.Prototypes), m.is(section.SentencePairs)}
}

func (m Model) is(f section.Fact) bool { return slices.Contains(given(m.System), f) }

func (m Model) named() string { return fmt.Sprintf("model.system %q", m.System) }

func (m Model) ImagesOnly() bool  { return m.is(section.ImagesAlone) }
func (m Model) TextsOnly() bool   { return m.is(section.Sentences) }
func (m Model) JudgesPairs() bool { return m.is(section.SentencePairs) }
func (m Model) Classifies() bool  { return m.is(section.Classes) }
func (m Model) seesViews() bool   { return m.is(section.Views) }
func (m Model) seesImages() bool  { return m.is(section.Images) }
func (m Model) ByIdentity() bool  { return m.is(section.Identities) }
func (m Model) HasTeacher() bool  { return m.is(section.Momentum) && !m.Interacts() }
func (m Model) Stored() bool      { return m.is(section.Stored) }
func (m Model) Fitted() bool      { return m.is(section.Fitted) }
func (m Model) Interacts() bool   { return m.Interaction.Kind != "" }
func (m Model) Adapts() bool      { return m.LoRA.Rank > 0 && m.is(section.Towers) }
func (m Model) Tunes() bool {
	return m.is(section.Towers) && (m.LoRA.Rank > 0 || len(m.Tuning.Methods()) > 0)
}

func (c *Config) hasHeads() bool     { return c.Has(section.FeatureHeads) }
func (c *Config) hasGRU() bool       { return c.Has(section.Recurrent) }
func (c *Config) readsResNet() bool  { return c.Has(section.Convolutions) }
func (c *Config) ReadsRegions() bool { return c.Has(section.Regions) }
func (c *Config) lacksTeacher() bool { return c.Model.is(section.Momentum) && !c.Momentum.Enabled }
func (c *Config) readsTeacher() bool { return c.Has(section.TeacherFeatures) }
func (c Config) CentersFeatures() bool {
	return c.Model.is(section.FeatureHeads) && c.Model.Heads.Center
}
func (c Config) HeadsStart() string {
	if !c.Model.is(section.FeatureHeads) {
		return ""
	}
	return c.Model.Heads.Start
}

const needsTeacher = "it needs the teacher: set momentum.enabled = true"
