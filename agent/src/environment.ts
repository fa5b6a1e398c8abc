// Environment variables for configurations and credentials.

/** Values by name; an absent variable is undefined. */
export type Environment = Readonly<Record<string, string | undefined>>
