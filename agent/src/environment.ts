// The variables of an environment, as configurations and credentials read them.

/** Values by name; an absent variable is undefined. */
export type Environment = Readonly<Record<string, string | undefined>>
