// RUN: %opt %s --dist-localize -verify-diagnostics -split-input-file

// What cannot be written as one function a rank.

// What the pass needs

// expected-error@+1 {{needs dist.mesh and @forward}}
module {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 0 : i64} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %a : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{needs dist.mesh and @forward}}
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} {
func.func private @forward()
}

// -----

// Shardings and stages are there, for the ranks and the stages that there are

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has no 'dist.in': run dist-assign-shardings first}}
  %a = llm.add %x, %x {dist.stage = 0 : i64} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %a : tensor<?x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has tiles for 1 ranks, but a stage has 2}}
  %a = dist.all_gather %x {dist.stage = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0], sizes = [8]>} : tensor<?x8xf32> -> tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %a : tensor<?x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has no dist.stage: run dist-split-stages first}}
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %a : tensor<?x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{names stage 2 of 2}}
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 2 : i64} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %a : tensor<?x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 0 : i64} : tensor<?x8xf32>
  // expected-error@+1 {{names stage 5 of 2}}
  %b = dist.transfer %a {from = 0 : i64, to = 5 : i64} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %b : tensor<?x8xf32>
}
}

// -----

// A value is read where it is

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 0 : i64} : tensor<?x8xf32>
  // expected-error@+1 {{of stage 1 reads a value that is at hand on stage 0: run dist-split-stages first}}
  %b = llm.add %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 1 : i64} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %b : tensor<?x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 0 : i64} : tensor<?x8xf32>
  // expected-error@+1 {{of stage 1 reads a value that is at hand on stage 0}}
  %b = dist.transfer %a {from = 1 : i64, to = 0 : i64} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %b : tensor<?x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>} {
func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 0 : i64} : tensor<?x8xf32>
  // expected-error@+1 {{of stage 1 reads a value that is at hand on stage 0}}
  return {dist.in = [#dist.replicated], dist.out = [], dist.stage = 1 : i64} %a : tensor<?x8xf32>
}
}
