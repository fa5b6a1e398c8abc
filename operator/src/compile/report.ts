// The problems of one compile, in the order of the stages, each with its location in a resource.

import type { Reason } from '../api/conditions.ts'
import { labelOf } from '../api/shape.ts'
import type { CompileProblem } from './compiled.ts'
import type { PathKey, Resource } from './resources.ts'
import type { TenancyViolation } from './tenancy.ts'

export class CompileReport {
  readonly #problems: CompileProblem[] = []

  get problems(): readonly CompileProblem[] {
    return this.#problems
  }

  add(...problems: readonly CompileProblem[]): void {
    this.#problems.push(...problems)
  }

  error(
    resource: Resource,
    path: readonly PathKey[],
    message: string,
    help?: string,
    reason: Reason = 'InvalidConfig',
    facts: Pick<CompileProblem, 'diagnostic' | 'isOfUser'> = {},
  ): void {
    const place = { path: labelOf(path), ...resource.locate(path, facts.diagnostic?.position) }
    this.#problems.push({ severity: 'error', reason, message, help, ...place, ...facts })
  }

  warn(resource: Resource, base: readonly PathKey[], violations: readonly TenancyViolation[]): void {
    for (const { path: inner, message, help } of violations) {
      const path = [...base, ...inner]
      const place = { path: labelOf(path), ...resource.locate(path) }
      this.#problems.push({ severity: 'warning', reason: 'InvalidConfig', message, help, ...place })
    }
  }

  forbid(resource: Resource, base: readonly PathKey[], violations: readonly TenancyViolation[]): void {
    for (const { path, message, help, diagnostic } of violations) {
      const facts = diagnostic === undefined ? {} : { diagnostic }
      this.error(resource, [...base, ...path], message, help, 'ForbiddenOption', facts)
    }
  }
}
