// Objects to be applied, described by cdk8s constructs. A construct tree here has one chart and no files: what it synthesises is
// a list of objects in the order in which they were described.

import { ApiObject, App, Chart } from 'cdk8s'
import type { ObjectMeta } from '../api/object.ts'

/** An object as it is applied: only the fields that we care about. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly [field: string]: unknown
}

/** Adds an object to the ones being described. */
export type Describe = (object: Manifest) => void

/** Everything that is described, without the members that are undefined. */
export function synthesise(describe: (add: Describe) => void): Manifest[] {
  const chart = new Chart(new App(), 'penstock')
  let count = 0
  describe((object) => {
    // The place in the tree must be unique and is seen by nobody: names are given, not allocated.
    new ApiObject(chart, `object-${count++}`, JSON.parse(JSON.stringify(object)))
  })
  return chart.toJson() as Manifest[]
}
